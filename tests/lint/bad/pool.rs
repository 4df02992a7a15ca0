async fn hold(pool: &PgPool) -> Result<bool> {
    let got = sqlx::query_scalar("SELECT pg_try_advisory_lock(42424242)").fetch_one(pool).await?; // expect: lock-on-pool
    let freed = sqlx::query_scalar("SELECT pg_advisory_unlock(42424242)").fetch_one(pool).await?;
    Ok(got && freed)
}
