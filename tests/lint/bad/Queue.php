<p>It's a page, not code: SELECT pg_advisory_lock(1)</p>
<?php

const STRAY = 4000001;

class Queue
{
    public function stray(PDO $pdo): void
    {
        $pdo->query('SELECT pg_advisory_xact_lock(' . STRAY . ')'); // expect: unregistered-id
        $pdo->query("SELECT pg_advisory_xact_lock(hashtext('queue'))"); # expect: hashtext, unregistered-label
        $pdo->query(<<<SQL
            SELECT pg_advisory_xact_lock(4000002) -- expect: unregistered-id
            SQL);
    }

    public function trap(PDO $pdo): void
    {
        $pdo->exec('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE');
        $pdo->exec('SELECT pg_advisory_xact_lock(51515151)'); // expect: snapshot-trap
    }

    public function free(PDO $pdo): void
    {
        $pdo->exec('SELECT pg_advisory_lock(42424242)');
        $pdo->exec('SELECT pg_advisory_unlock(42424242)'); // expect: unlock-result-ignored
    }
}
