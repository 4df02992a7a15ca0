package app

const val STRAY = 7_000_001L

fun stray(connection: Connection) {
    connection.createStatement().execute("SELECT pg_advisory_xact_lock($STRAY)") // expect: unregistered-id
    connection.createStatement().execute("""
        SELECT pg_advisory_xact_lock(${STRAY}) -- expect: unregistered-id
    """)
}

fun trap() = transaction(Connection.TRANSACTION_SERIALIZABLE, 3) {
    exec("SELECT pg_advisory_xact_lock(51515151)") // expect: snapshot-trap
}

fun unlock(connection: Connection) {
    connection.prepareStatement("SELECT pg_advisory_unlock(42424242)").executeUpdate() // expect: unlock-result-ignored
}
