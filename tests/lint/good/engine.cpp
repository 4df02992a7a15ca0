// tx.exec("SELECT pg_advisory_lock(1)");
void take(pqxx::work &tx)
{
    auto n = 1'000'000;
    tx.exec(R"(SELECT pg_advisory_xact_lock(51515151))");
}
