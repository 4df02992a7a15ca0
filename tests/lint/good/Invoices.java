package app;

public class Invoices {
    // jdbc.execute("SELECT pg_advisory_lock(1)");
    @Transactional
    public void close(long id) {
        char quote = '"';
        jdbc.queryForObject("SELECT pg_advisory_xact_lock(51515151)", Object.class);
    }

    @Transactional(isolation = Isolation.SERIALIZABLE)
    public void other(long id) {
        jdbc.update("UPDATE invoices SET open = false");
    }

    public boolean unlock() {
        return jdbc.queryForObject("SELECT pg_advisory_unlock(42424242)", Boolean.class);
    }

    public void lock() {
        jdbc.queryForObject("SELECT pg_advisory_lock(42424242)", Object.class);
    }
}
