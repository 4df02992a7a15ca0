package app;

public class Invoices {
    private static final long STRAY = 8_000_001L;

    /** Calls SELECT pg_advisory_lock(1). */
    @Transactional(isolation = Isolation.SERIALIZABLE)
    public void close(long id) {
        jdbc.queryForObject("SELECT pg_advisory_xact_lock(51515151)", Object.class); // expect: snapshot-trap
    }

    public void stray() {
        jdbc.queryForObject("SELECT pg_advisory_xact_lock(?)", Object.class, STRAY); // expect: unregistered-id
        jdbc.queryForObject("SELECT pg_advisory_xact_lock(" + STRAY + ")", Object.class); // expect: unregistered-id
        em.createNativeQuery("""
            SELECT pg_advisory_xact_lock(8000002) -- expect: unregistered-id
            """).getSingleResult();
        em.createQuery("select function('pg_advisory_xact_lock', 8000003) from Lock"); // expect: unregistered-id
    }

    public void unlock(Statement statement) throws SQLException {
        statement.execute("SELECT pg_advisory_lock_shared(42424242)");
        statement.execute("SELECT pg_advisory_unlock(42424242)"); // expect: unlock-of-other-mode, unlock-result-ignored
    }
}
