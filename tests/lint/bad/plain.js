'use strict';
const knex = require('knex')({ client: 'pg' });

module.exports.stray = async (trx, sequelize) => {
  await trx.raw('SELECT pg_advisory_xact_lock(?)', [1200001]); // expect: unregistered-id
  await sequelize.query('SELECT pg_advisory_xact_lock(:key)', { replacements: { key: 1200002 } }); // expect: unregistered-id
};
