import org.springframework.jdbc.core.JdbcTemplate;

class Pool {
    boolean hold(JdbcTemplate jdbcTemplate) {
        Boolean got = jdbcTemplate.queryForObject("SELECT pg_try_advisory_lock(42424242)", Boolean.class); // expect: lock-on-pool
        Boolean freed = jdbcTemplate.queryForObject("SELECT pg_advisory_unlock(42424242)", Boolean.class);
        return got && freed;
    }

    void stale(Statement statement, long id) {
        Job job = jobRepository.findById(id);
        statement.execute("SELECT pg_advisory_xact_lock(51515151)"); // expect: lock-after-read
        jobRepository.save(job);
    }
}
