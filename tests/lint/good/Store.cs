namespace App;

public class Store
{
    // "SELECT pg_advisory_lock(1)"
    private readonly char quote = '\'';

    public async Task Close(NpgsqlConnection connection)
    {
        await using var tx = await connection.BeginTransactionAsync(IsolationLevel.ReadCommitted);
        await connection.ExecuteAsync("SELECT pg_advisory_xact_lock(51515151)");
    }

    public async Task<bool> Free(NpgsqlConnection connection)
    {
        return await connection.ExecuteScalarAsync<bool>("SELECT pg_advisory_unlock(42424242)");
    }
}
