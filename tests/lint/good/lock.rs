/* a /* nested */ comment: pg_advisory_lock(1) */
fn quote<'a>(x: &'a str) -> char {
    '"'
}

/// Like `SELECT pg_advisory_lock(1)`.
pub async fn close<'c>(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query("SELECT pg_advisory_xact_lock(51515151)").execute(&mut *conn).await?;
    // holdfast-ignore: unresolved-key key() reads the configuration
    sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)").bind(key()).fetch_one(conn).await
}
