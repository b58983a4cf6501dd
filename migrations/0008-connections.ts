// Customers' own WhatsApp numbers, their templates, and the PINs their registration was given.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    CREATE TABLE whatsapp_connections (
      id BINARY(16) NOT NULL,
      account_id BINARY(16) NOT NULL,
      phone_number_id VARCHAR(20) CHARACTER SET ascii NOT NULL,
      waba_id VARCHAR(20) CHARACTER SET ascii NULL,
      source ENUM('manual', 'embedded_signup') NOT NULL,
      sealed_token MEDIUMTEXT CHARACTER SET ascii NOT NULL,
      display_name VARCHAR(512) NULL,
      display_phone_number VARCHAR(40) NULL,
      quality_rating VARCHAR(16) CHARACTER SET ascii NOT NULL,
      status ENUM('connected', 'broken') NOT NULL,
      broken_at BIGINT UNSIGNED NULL,
      broken_reason VARCHAR(32) CHARACTER SET ascii NULL,
      connected_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (id),
      UNIQUE KEY whatsapp_connections_account (account_id),
      UNIQUE KEY whatsapp_connections_number (phone_number_id),
      KEY whatsapp_connections_waba (waba_id),
      KEY whatsapp_connections_status (status)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex.raw(`
    CREATE TABLE whatsapp_templates (
      connection_id BINARY(16) NOT NULL,
      name VARCHAR(512) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
      language VARCHAR(12) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
      status VARCHAR(32) CHARACTER SET ascii NOT NULL,
      checked_at BIGINT UNSIGNED NULL,
      news_at BIGINT UNSIGNED NULL,
      changed_at BIGINT UNSIGNED NULL,
      PRIMARY KEY (connection_id, name, language),
      CONSTRAINT whatsapp_templates_connection FOREIGN KEY (connection_id)
        REFERENCES whatsapp_connections (id) ON DELETE CASCADE
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  // A number keeps its PIN on the provider's side whoever connects it, and after a disconnect.
  await knex.raw(`
    CREATE TABLE whatsapp_pins (
      phone_number_id VARCHAR(20) CHARACTER SET ascii NOT NULL,
      sealed_pin TEXT CHARACTER SET ascii NOT NULL,
      created_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (phone_number_id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('whatsapp_pins');
  await knex.schema.dropTable('whatsapp_templates');
  await knex.schema.dropTable('whatsapp_connections');
};
