package app

/* outer /* SELECT pg_advisory_lock(1) */ still a comment: SELECT pg_advisory_lock(2) */
fun close() = transaction {
    exec("SELECT pg_advisory_xact_lock(51515151)")
}

fun unlock(connection: Connection): Boolean {
    return connection.one("SELECT pg_advisory_unlock(42424242)")
}
