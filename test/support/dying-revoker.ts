// A process that revokes a key and is killed between the commit and the announcement.
// Arguments: its environment as JSON, the account and the key.
import { createApiApp } from '../../lib/app.ts';
import { loadConfig } from '../../lib/kernel/config.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { revokeKey } from '../../lib/keys/manage.ts';
import { ownerAct } from './acts.ts';

const [, , environment = '{}', accountId = '', id = ''] = process.argv;
const app = await createApiApp({
  config: loadConfig(JSON.parse(environment)),
  log: silentLog,
  processName: `revoker ${process.pid}`,
});
const revocations = {
  ...app.revocations,
  announce: async () => {
    process.kill(process.pid, 'SIGKILL');
  },
};
await revokeKey({ ...app, revocations }, { accountId, id, act: ownerAct, keepDescendants: false });
