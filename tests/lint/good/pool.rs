async fn hold(conn: &mut PgConnection) -> Result<bool> {
    let got = sqlx::query_scalar("SELECT pg_try_advisory_lock(42424242)").fetch_one(&mut *conn).await?;
    let freed = sqlx::query_scalar("SELECT pg_advisory_unlock(42424242)").fetch_one(&mut *conn).await?;
    Ok(got && freed)
}
