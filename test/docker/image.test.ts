// The image has what it is told to copy, and everything its processes load: seen without building it.
import test from 'ava';
import { readProcfile } from '../../docker/local/procfile.ts';
import { filesAt, imageFiles, isIgnored, needsOf, readHere, stagesOf, withBases } from './image.ts';

const stages = stagesOf(readHere('docker/Dockerfile'));
const ignoreFile = readHere('docker/Dockerfile.dockerignore');
const { dependencies } = JSON.parse(readHere('package.json')) as {
  dependencies: Record<string, string>;
};

const scriptsIn = (text: string): string[] =>
  [...text.matchAll(/\b((?:[\w-]+\/)+[\w-]+\.ts)\b/g)].map((match) => match[1] ?? '');

/** The scripts that compose runs in a stage's image; what belongs to the demo is marked with its profile. */
const composed = (stage: string): string[] => {
  const services = readHere('docker/compose.yml').split(/\n(?= {2}[\w-]+:\n)/);
  const ofStage = services.filter(
    (text) => text.includes('image: tessera-demo') === (stage === 'demo'),
  );
  return ofStage.flatMap((text) => scriptsIn(text.replace(/^\s*#.*$/gm, '')));
};

test('compose starts every process with the bounds of its heap that the Procfile has', (t) => {
  const compose = readHere('docker/compose.yml');
  const { processes } = readProcfile('Procfile');
  t.true(processes.length > 5);
  for (const { name, args } of processes) {
    const [, command = ''] =
      new RegExp(`^  ${name}:\\n[^]*?command: \\[(.+)\\]`, 'm').exec(compose) ?? [];
    const given = command.split(', ').filter((word) => word.startsWith('--max-'));
    t.deepEqual(
      given,
      args.filter((word) => word.startsWith('--')),
      name,
    );
  }
});

test('an ignore file lets through what its last fitting pattern says', (t) => {
  const text = '# only these\n*\n!lib\nlib/secret.ts\n!docker/one.ts\n';
  t.deepEqual(
    ['lib/a/b.ts', 'lib/secret.ts', 'docker/one.ts', 'docker/two.ts', 'README.md'].map((path) =>
      isIgnored(text, path),
    ),
    [false, true, false, true, true],
  );
});

test('every file that the Dockerfile copies exists and reaches the builder', (t) => {
  const sources = stages.flatMap(({ copies }) => copies.flatMap((copy) => copy.sources));
  t.true(sources.length > 8);
  for (const source of sources) {
    const files = filesAt(source);
    t.true(files.length > 0, `${source} does not exist`);
    const kept = files.filter((file) => isIgnored(ignoreFile, file));
    t.deepEqual(kept, [], `${source} is kept from the builder`);
  }
});

for (const stage of ['app', 'demo']) {
  test(`the image "${stage}" has every file and package that its processes load`, (t) => {
    const built = withBases(stages, stage);
    const runs = built.flatMap((each) => each.runs).flatMap(scriptsIn);
    const entries = [...new Set([...runs, ...composed(stage)])];
    t.true(entries.includes('docker/precompile.ts'));
    t.true(entries.includes(stage === 'app' ? 'api/ops/main.ts' : 'docker/local/seed.ts'));
    const { files, packages } = needsOf(entries);
    t.true(files.size > 50);
    const held = imageFiles(built, ignoreFile);
    t.deepEqual(
      [...files].filter((file) => !held.has(file)),
      [],
    );
    const installed = Object.keys(dependencies);
    const missing = [...packages].filter(
      (name) =>
        !name.startsWith('node:') &&
        !installed.some((known) => name === known || name.startsWith(`${known}/`)),
    );
    t.deepEqual(missing, []);
  });
}

test('compose asks for every password of an engine and has no default for any', (t) => {
  const compose = readHere('docker/compose.yml');
  const used = [...compose.matchAll(/\$\{([A-Z]+_PASSWORD)([^}]*)\}/g)];
  const names = new Set(used.map(([, name = '']) => name));
  t.deepEqual([...names].toSorted(), [
    'GRAFANA_PASSWORD',
    'MYSQL_PASSWORD',
    'RABBITMQ_PASSWORD',
    'REDIS_PASSWORD',
  ]);
  for (const [whole, , rest] of used) t.is(rest, ':?set it in docker/.env', whole);
  const demo = readHere('docker/demo.env');
  for (const name of names) t.regex(demo, new RegExp(`^${name}=\\S+$`, 'm'), name);
  // Redis asks for its password, and so do the addresses of all three.
  t.regex(compose, /--requirepass\n +- \$\{REDIS_PASSWORD/);
  const addresses = [...compose.matchAll(/: ((?:mysql|redis|amqp|http):\/\/[^\n]*@)/g)];
  t.is(addresses.length, 4);
  for (const [, address = ''] of addresses) t.regex(address, /:\$\{[A-Z]+_PASSWORD/);
});
