import { homedir } from 'node:os';
import { posix } from 'node:path';
import { type Stage, type Step } from './dockerfile.ts';
import { type MountNamespace } from './namespace.ts';

/** A stage that is built. */
export interface BuiltStage {
  /** Layers for overlayfs, the upper one first. */
  layers: readonly string[];
  /** Where all of them are mounted, inside the namespace. */
  root: string;
  env: Readonly<Record<string, string>>;
  workdir: string;
  user: string;
  entrypoint: readonly string[];
}

export interface BuilderOptions {
  stages: ReadonlyMap<string, Stage>;
  namespace: MountNamespace;
  /** On a tmpfs of the namespace. */
  folder: string;
  /** The build context. */
  context: string;
  /** Layers that stand for an image that is not ours. */
  base: (image: string) => readonly string[];
}

/** Builds stages as `docker build` would, each once: a layer of its own over those of what it is from. */
export function createBuilder(options: BuilderOptions): (name: string) => Promise<BuiltStage> {
  const built = new Map<string, Promise<BuiltStage>>();
  const get = (name: string): Promise<BuiltStage> => {
    const stage = options.stages.get(name);
    if (stage === undefined) throw new Error(`the Dockerfile has no stage ${name}`);
    const running = built.get(name) ?? buildStage(stage, get, options);
    built.set(name, running);
    return running;
  };
  return get;
}

async function buildStage(
  stage: Stage,
  get: (name: string) => Promise<BuiltStage>,
  options: BuilderOptions,
): Promise<BuiltStage> {
  const { stages, namespace, folder } = options;
  const parent = stages.has(stage.from) ? await get(stage.from) : foreign(options.base(stage.from));
  const place = `${folder}/${stage.name}`;
  const root = `${place}/root`;
  const upper = `${place}/upper`;
  await namespace.run(
    `mkdir -p ${root} ${upper} ${place}/work
     mount -t overlay none ${root} -o lowerdir=${parent.layers.join(':')},upperdir=${upper},workdir=${place}/work
     mount --rbind /proc ${root}/proc; mount --rbind /dev ${root}/dev`,
  );
  const result = { ...parent, root, layers: [upper, ...parent.layers] };
  for (const step of stage.steps) await take(step, { result, get, options });
  return result;
}

const foreign = (layers: readonly string[]): BuiltStage => ({
  ...{ layers, root: '', workdir: '/', user: '0:0', entrypoint: [] },
  env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
});

interface Place {
  result: BuiltStage;
  get: (name: string) => Promise<BuiltStage>;
  options: BuilderOptions;
}

async function take(step: Step, place: Place): Promise<void> {
  const { result, options } = place;
  switch (step.kind) {
    case 'env':
      result.env = { ...result.env, ...step.variables };
      return;
    case 'workdir':
      result.workdir = posix.resolve(result.workdir, step.path);
      await options.namespace.run(`mkdir -p ${result.root}${result.workdir}`);
      return;
    case 'user':
      result.user = step.user;
      return;
    case 'entrypoint':
      result.entrypoint = step.command;
      return;
    case 'expose':
      return;
    case 'copy':
      await copy(step, place);
      return;
    case 'run':
      await run(step, place);
  }
}

/** Copies as COPY does: of a folder what is in it, owned by root, to a path in the working directory. */
async function copy(step: Step & { kind: 'copy' }, { result, get, options }: Place): Promise<void> {
  const from = step.from === null ? options.context : (await get(step.from)).root;
  const target = `${result.root}${posix.resolve(result.workdir, step.target)}`;
  const isFolder = step.target.endsWith('/') || step.sources.length > 1;
  const mode = step.mode === null ? '' : `chmod ${step.mode} "$target"`;
  for (const source of step.sources) {
    await options.namespace.run(
      `source=${from}/${source}; target=${target}; ${isFolder ? 'mkdir -p "$target"' : ''}
       if [ -d "$source" ]; then mkdir -p "$target"; cp -a --no-preserve=ownership "$source/." "$target"
       else mkdir -p "$(dirname "$target")"; cp --preserve=mode,timestamps "$source" "$target"; ${mode || ':'}; fi`,
    );
  }
}

/** Of this machine: how packages are reached from here. Docker passes proxies on likewise. */
const outward = /^(npm_config_(registry|cafile)|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE)$/i;
const script = 'command';

async function run(step: Step & { kind: 'run' }, { result, options }: Place): Promise<void> {
  const { root, env, workdir } = result;
  const passed = Object.entries(process.env).filter(([name]) => outward.test(name));
  const all = { ...Object.fromEntries(passed), HOME: '/root', ...env, DEBIAN_FRONTEND: 'noninteractive' };
  const words = Object.entries(all).map(([name, value]) => `'${name}=${value}'`);
  const mounts = step.caches.map(
    (path) => `mkdir -p ${cacheOf(path)} ${root}${path}; mount --bind ${cacheOf(path)} ${root}${path}`,
  );
  const unmounts = step.caches.map((path) => `umount ${root}${path}; rmdir ${root}${path}`);
  await options.namespace.run(
    `${mounts.join('\n')}
     env -i ${words.join(' ')} nice -n 10 chroot ${root} env -C ${workdir} sh -c "$${script}"
     ${unmounts.join('\n')}`,
    { [script]: step.command },
  );
}

/** This machine's own cache of npm: what is in the lock file has been fetched already. */
function cacheOf(path: string): string {
  if (path !== '/var/cache/npm') throw new Error(`there is no cache for ${path}`);
  return process.env['npm_config_cache'] || `${homedir()}/.npm`;
}
