<p>It's a page</p>
<?php

# SELECT pg_advisory_lock(1)
class Queue
{
    #[Pure]
    public function close(PDO $pdo): bool
    {
        $pdo->query('SELECT pg_advisory_xact_lock(51515151)');
        $free = $pdo->query('SELECT pg_try_advisory_xact_lock(51515151)');
        return $free->fetchColumn();
    }
}
?>
<p>It's the end of the page: SELECT pg_advisory_lock(2)</p>
