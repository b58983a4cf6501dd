// The bootstrap behind npm start, test, bench, test:faults and test:attacks: runs on plain Node 20 with nothing installed.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
const modules = join(root, 'node_modules');
const bin = join(modules, '.bin');
const node = join(bin, 'node');
const stamp = join(modules, '.tessera-lock');
const commands = {
  install: undefined,
  start: 'start.ts',
  test: 'test.ts',
  bench: 'bench.ts',
  'bench:reports': 'bench-reports.ts',
  faults: 'faults.ts',
  attacks: 'attacks.ts',
  engines: 'serve-engines.ts',
};

const say = (line) => process.stderr.write(`${line}\n`);

const fail = (line) => {
  say(line);
  process.exit(1);
};

const readText = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : '');

// npm keeps what it installed in node_modules/.package-lock.json: after a plain `npm install`
// everything is in place already and must not be installed again under running processes.
const installedMatches = (lockText) => {
  const installedText = readText(join(modules, '.package-lock.json'));
  if (installedText === '') return false;
  const installed = JSON.parse(installedText).packages;
  return Object.entries(JSON.parse(lockText).packages).every(([path, wanted]) => {
    if (path === '') return true;
    const found = installed[path];
    if (!found) return Boolean(wanted.optional);
    return found.version === wanted.version && found.integrity === wanted.integrity;
  });
};

// Standard output belongs to the command itself, so messages of npm go to standard error.
const runNpm = (args) =>
  spawnSync('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 2, 'pipe'],
    encoding: 'utf8',
  });

// A registry that lacks a package for some other platform leaves a gap in the lock file, which
// npm ci refuses as EUSAGE; npm install takes the same locked versions and leaves the file alone.
const installLocked = () => {
  const strict = runNpm(['ci']);
  const done =
    strict.status !== 0 && strict.stderr.includes('EUSAGE')
      ? runNpm(['install', '--no-save'])
      : strict;
  if (done.status !== 0) fail(`${done.stderr}Installing the packages failed; npm says why above.`);
};

const installPackages = () => {
  const lockText = readText(join(root, 'package-lock.json'));
  if (lockText === '') fail('package-lock.json is missing: this checkout is not complete.');
  if (readText(stamp) === lockText) return;
  if (!installedMatches(lockText)) {
    say('Installing packages…');
    installLocked();
  }
  writeFileSync(stamp, lockText);
};

const hasNode24 = () => {
  if (!existsSync(node)) return false;
  const asked = spawnSync(node, ['--version'], { encoding: 'utf8' });
  return asked.status === 0 && asked.stdout.startsWith('v24.');
};

// The npm package `node` fetches its binary in a preinstall script, which npm may be told to skip.
const ensureNode24 = () => {
  if (hasNode24()) return;
  say('Fetching Node 24…');
  spawnSync(process.execPath, ['installArchSpecificPackage.js'], {
    cwd: join(modules, 'node'),
    stdio: ['ignore', 2, 2],
  });
  if (!hasNode24()) {
    fail('Node 24 could not be fetched from the package registry: npm install node@24 shows why.');
  }
};

// A killed command cannot clean up after itself, so what it started is ended here.
const endLeftovers = (state) => {
  if (state) spawnSync(node, [join(here, 'end-leftovers.ts'), state], { stdio: 'inherit' });
};

// Under npm a change of parent means that npm was killed: nobody could stop us any more.
const watchParent = (onGone) => {
  if (!process.env.npm_lifecycle_event) return;
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && onGone(), 1000).unref();
};

const runCommand = (file, args) => {
  const child = spawn(node, [join(here, file), ...args], {
    cwd: root,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ''}` },
  });
  let state;
  child.on('message', (message) => {
    state = message.state;
  });
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  for (const signal of signals) process.on(signal, () => child.kill(signal));
  watchParent(() => child.kill('SIGTERM'));
  child.on('exit', (code, signal) => {
    if (code === null) endLeftovers(state);
    process.exit(code ?? 128 + (constants.signals[signal] ?? 0));
  });
};

const [command = '', ...args] = process.argv.slice(2);
if (!Object.hasOwn(commands, command)) {
  fail(`Usage: node docker/local/run.mjs ${Object.keys(commands).join('|')} [arguments]`);
}
installPackages();
ensureNode24();
if (commands[command]) runCommand(commands[command], args);
