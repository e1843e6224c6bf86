import { readdirSync, readFileSync } from 'node:fs';

interface LeftProcess {
  pid: number;
  command: string;
}

/**
 * Living processes of a run: of its session, or with its folder in their command or environment (those that made a
 * session of their own, as servers do). None where the system has no `/proc`.
 */
export function processesOf(session: number, folder: string): LeftProcess[] {
  return pids().flatMap((pid) => {
    const { state, session: own } = statusOf(pid);
    if (pid === process.pid || state === '' || state === 'Z') return [];
    const command = textOf(pid, 'cmdline');
    const belongs = own === session || command.includes(folder) || textOf(pid, 'environ').includes(folder);
    return belongs ? [{ pid, command: command.replaceAll('\0', ' ').trim().slice(0, 200) }] : [];
  });
}

function pids(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

/** Of `/proc/PID/stat`: what follows the name in brackets is state, parent, group, session. Empty when it is gone. */
function statusOf(pid: number): { state: string; session: number } {
  const text = textOf(pid, 'stat');
  const [state = '', , , session] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state, session: Number(session) };
}

function textOf(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
