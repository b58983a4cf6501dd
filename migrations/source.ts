// Where knex finds the migrations: the numbered files of this folder, known by name without extension.
import { readdir } from 'node:fs/promises';
import type { Knex } from 'knex';

const numbered = /^\d{4}-[a-z-]+\.ts$/;

export const migrationSource: Knex.MigrationSource<string> = {
  getMigrations: async () =>
    (await readdir(import.meta.dirname)).filter((file) => numbered.test(file)).sort(),
  getMigrationName: (file) => file.slice(0, -'.ts'.length),
  getMigration: (file) => import(`./${file}`) as Promise<Knex.Migration>,
};
