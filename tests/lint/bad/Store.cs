namespace App;

public class Store
{
    private const long Stray = 6_000_001;

    public async Task Take(NpgsqlConnection connection)
    {
        await connection.ExecuteAsync($"SELECT pg_advisory_xact_lock({Stray})"); // expect: unregistered-id
        await connection.ExecuteAsync(@"SELECT ""pg_advisory_xact_lock""(6000002)"); // expect: unregistered-id
        await connection.ExecuteAsync("SELECT pg_advisory_xact_lock(@key)", new { key = Stray }); // expect: unregistered-id
        var name = new PostgresAdvisoryLockKey("default", allowHashing: true); // expect: generic-label, unregistered-label
    }

    public async Task Trap(NpgsqlConnection connection)
    {
        await using var tx = await connection.BeginTransactionAsync(IsolationLevel.Serializable);
        await connection.ExecuteAsync("SELECT pg_advisory_xact_lock(51515151)"); // expect: snapshot-trap
    }

    public async Task Free(NpgsqlCommand command)
    {
        command.CommandText = "SELECT pg_advisory_unlock(42424242)";
        await command.ExecuteNonQueryAsync();
    }
}
