use sqlx::postgres::PgAdvisoryLock;

const STRAY: i64 = 5_000_001;

pub async fn stray<'a>(conn: &'a mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(STRAY).execute(&mut *conn).await?; // expect: unregistered-id
    sqlx::query(r#"SELECT pg_advisory_xact_lock(5000002)"#).execute(&mut *conn).await?; // expect: unregistered-id
    diesel::select(pg_advisory_xact_lock(STRAY)).execute(conn)?; // expect: unregistered-id
    let lock = PgAdvisoryLock::new("test"); // expect: generic-label, unregistered-label
    Ok(())
}

pub async fn trap(conn: &mut PgConnection) {
    sqlx::query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_advisory_xact_lock(51515151)"); // expect: snapshot-trap
}
