'use strict';
// knex.raw('SELECT pg_advisory_lock(1)')
module.exports.close = async (trx) => {
  await trx.raw('SELECT pg_advisory_xact_lock(?)', [51515151]);
};
