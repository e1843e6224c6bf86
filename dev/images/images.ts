import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeBaseLayers, nodeVersionOf } from './base-image.ts';
import { copyContext } from './build-context.ts';
import { type BuiltStage, createBuilder } from './build.ts';
import { parseDockerfile } from './dockerfile.ts';
import { type MountNamespace, openMountNamespace } from './namespace.ts';

const repository = fileURLToPath(new URL('../../', import.meta.url));

export interface RunOptions {
  /** Beside the image's own. */
  env?: Readonly<Record<string, string>>;
  /** Instead of the image's entry point. */
  command?: readonly string[];
  /** Folders that can be written, as an `emptyDir` is. */
  volumes?: readonly string[];
}

/** An image's root file system, and what its Dockerfile says of how to run it. */
export interface Image extends Pick<BuiltStage, 'user' | 'entrypoint' | 'env'> {
  /** Starts a container's process: as the image's user, without any right, with the root read-only. */
  start(options?: RunOptions): ChildProcess;
}

export interface Images {
  /** Builds a target of the Dockerfile. */
  build(target: string): Promise<Image>;
  /** Removes all of them. What was started must have ended. */
  close(): Promise<void>;
}

/** Makes images without Docker: the Dockerfile's steps, taken one by one in file systems laid over this machine's own. */
export async function openImages(): Promise<Images> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-images-'));
  const namespace = await openMountNamespace();
  const close = async (): Promise<void> => {
    await namespace.close();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const stages = parseDockerfile(await readFile(join(repository, 'Dockerfile'), 'utf8'));
    const [context, layers] = [join(folder, 'context'), join(folder, 'layers')];
    await mkdir(context);
    await copyContext(repository, context);
    await mkdir(layers);
    await namespace.run(`mount -t tmpfs -o size=4g none ${layers}`);
    const base = await makeBaseLayers(join(layers, 'node'), namespace);
    const build = createBuilder({
      ...{ stages, namespace, context, folder: layers },
      base: (image) => {
        if (nodeVersionOf(image) !== process.versions.node) throw new Error(`${image} is not our Node.js`);
        return base;
      },
    });
    const built = (stage: BuiltStage): Image => ({
      ...stage,
      start: (options = {}) => start(stage, options, { namespace, folder: layers }),
    });
    return { build: async (target) => built(await build(target)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Of the image and of the container: its environment holds both and nothing else. */
function start(
  { layers, env, workdir, user, entrypoint }: BuiltStage,
  { env: more = {}, command = entrypoint, volumes = [] }: RunOptions,
  { namespace, folder }: { namespace: MountNamespace; folder: string },
): ChildProcess {
  const [uid = '', gid = ''] = user.split(':');
  const place = `${folder}/${randomUUID()}`;
  const root = `${place}/root`;
  const points = volumes.map((path) => `${place}/points${path}`);
  const mounts = volumes.map((path) => `mount -t tmpfs -o mode=2775,uid=0,gid=${gid} none ${root}${path}`);
  const rights = `--reuid ${uid} --regid ${gid} --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs`;
  const script = `
    mkdir -p ${root} ${place}/points ${points.join(' ')}
    mount -t overlay none ${root} -o ro,lowerdir=${place}/points:${layers.join(':')}
    mount --rbind /proc ${root}/proc; mount --rbind /dev ${root}/dev
    ${mounts.join('\n')}
    exec chroot ${root} /usr/bin/setpriv ${rights} --pdeathsig KILL -- /usr/bin/env -i -C ${workdir} "$@"`;
  const variables = Object.entries({ ...env, ...more }).map(([name, value]) => `${name}=${value}`);
  const [program = '', ...enter] = namespace.enter;
  // Its mounts are its own, and end with it.
  const unshare = ['unshare', '--mount', '--propagation', 'private', 'sh', '-euc', script, 'container'];
  return spawn(program, [...enter, ...unshare, ...variables, ...command], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}
