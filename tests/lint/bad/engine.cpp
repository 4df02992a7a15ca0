constexpr long stray = 1100001;

void take(pqxx::work &tx)
{
    tx.exec(R"sql(SELECT pg_advisory_xact_lock(1100002))sql"); // expect: unregistered-id
    tx.exec("SELECT pg_advisory_xact_lock(" + std::to_string(stray) + ")"); // expect: unregistered-id
}
