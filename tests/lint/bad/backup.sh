#!/bin/sh
# psql -c 'SELECT pg_advisory_lock(1)'
psql -c "SELECT pg_advisory_xact_lock(1800001)" # expect: unregistered-id
psql <<EOF
SELECT pg_advisory_xact_lock(1800002); -- expect: unregistered-id
EOF
