#!/bin/sh
# psql -c 'SELECT pg_advisory_lock(1)'
[ $# -gt 0 ] && psql -c "SELECT pg_advisory_xact_lock(51515151)"
