import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

/** Things that a disguised file may name, and that notice when somebody follows it. */
export interface Traps {
  folder: string;
  /** A file whose opening is noticed, with a name that playlists may use. */
  canary: string;
  /** An address whose connections are noticed. */
  url: string;
  sprung(): { file: boolean; connections: number };
  close(): Promise<void>;
}

export async function setTraps(): Promise<Traps> {
  const folder = await mkdtemp(path.join(tmpdir(), 'millrace-trap-'));
  const canary = path.join(folder, 'canary.mp4');
  await promisify(execFile)('mkfifo', [canary]);
  let file = false;
  // The opening of a named pipe waits for its other end: for whoever reads the canary.
  const reader = open(canary, 'w').then(async (handle) => {
    file = true;
    await handle.close();
  });
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    folder,
    canary,
    url: `http://127.0.0.1:${port}/canary.ts`,
    sprung: () => ({ file, connections: sockets.length }),
    close: async () => {
      const end = await open(canary, constants.O_RDONLY | constants.O_NONBLOCK);
      await reader;
      await end.close();
      server.close();
      await once(server, 'close');
      await rm(folder, { recursive: true });
    },
  };
}

/** Files that name the traps, each in its own way. */
export const disguises = ({ canary, url }: Pick<Traps, 'canary' | 'url'>): Record<string, string> => ({
  'HLS, an address': `#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10.0,\n${url}\n#EXT-X-ENDLIST\n`,
  'HLS, a file': `#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10.0,\n${canary}\n#EXT-X-ENDLIST\n`,
  'HLS behind a byte order mark': `\uFEFF#EXTM3U\n#EXTINF:10.0,\n${url}\n#EXT-X-ENDLIST\n`,
  'a master playlist': `#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n${url}\n`,
  'a concat script': `ffconcat version 1.0\nfile '${canary}'\nfile '${url}'\n`,
  DASH: `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT2S"><Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1"><BaseURL>${url}</BaseURL></Representation></AdaptationSet></Period></MPD>`,
  SVG: `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="64" height="64"><image xlink:href="file://${canary}" width="64" height="64"/></svg>`,
  SDP: `v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 96\n`,
});
