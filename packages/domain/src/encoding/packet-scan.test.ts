import { describe, expect, it } from '@jest/globals';
import { createPacketScan } from './packet-scan.ts';
import { type PacketTimes, readProbeHeader } from './probe.ts';
import { type SourceContainer } from './types.ts';

/** A packet as ffprobe lists it: `stream,pts,dts,duration,flags`. */
type Packet = readonly [
  pts: number | null,
  dts: number | null,
  duration?: number,
  flags?: string,
  stream?: number,
];

interface Scanned extends PacketTimes {
  discontinuous: boolean;
}

/** Scans packets of stream 0, a picture unless told, and a second stream of sound; times are milliseconds. */
function scan(
  packets: readonly Packet[],
  {
    container = 'mp4',
    reorder = 0,
    kind = 'video',
  }: { container?: SourceContainer; reorder?: number; kind?: string } = {},
): Scanned {
  const header = readProbeHeader(
    JSON.stringify({
      streams: [
        { index: 0, codec_type: kind, time_base: '1/1000', has_b_frames: reorder },
        { index: 1, codec_type: 'audio', time_base: '1/1000' },
      ],
      format: { format_name: 'x' },
    }),
  );
  const scanning = createPacketScan(container, header);
  const text = packets.map(
    ([pts, dts, duration = 40, flags = 'K_', stream = 0]) =>
      `${stream},${pts ?? 'N/A'},${dts ?? 'N/A'},${duration},${flags}`,
  );
  scanning.write(text.join('\n'));
  const { streams, discontinuous } = scanning.end();
  const times = streams.get(0);
  if (times === undefined) throw new Error('no stream');
  return { ...times, discontinuous };
}
const at = (...times: number[]): Packet[] => times.map((time) => [time, time]);

describe('the times of packets', () => {
  it('are those of all pictures, the last line too, in the order in which they are shown', () => {
    const times = scan([
      [0, -40],
      [120, 0],
      [40, 40],
      [80, 80],
    ]);
    expect(times).toMatchObject({ packets: 4, ticks: [0, 40, 80, 120], firstTick: 0, endTick: 160 });
  });

  it('end with the packet that is shown last, not the one that comes last', () => {
    expect(
      scan([
        [0, 0, 40],
        [80, 40, 500],
        [40, 80, 40],
      ]),
    ).toMatchObject({ lastDuration: 500, endTick: 580 });
  });

  it('leave out what is not shown', () => {
    expect(
      scan([
        [0, 0, 40, 'KD'],
        [40, 40, 40, '_D'],
        [80, 80, 40, '__'],
      ]),
    ).toMatchObject({
      ...{ packets: 1, listed: 3, ticks: [80], firstTick: 80 },
    });
  });

  it('count a time once, however many packets have it', () => {
    expect(scan(at(0, 40, 40, 80)).ticks).toEqual([0, 40, 80]);
  });

  it('keep no list for sound', () => {
    expect(scan(at(0, 20, 40), { kind: 'audio' })).toMatchObject({
      packets: 3,
      ticks: [],
      firstTick: 0,
      endTick: 80,
    });
  });

  it('are none without packets, and without lines of a packet', () => {
    expect(scan([])).toMatchObject({ packets: 0, listed: 0, ticks: [], endTick: 0, orderly: true });
    expect(scan([[null, null]])).toMatchObject({ packets: 0, ticks: [] });
  });

  it('are decoding times where there are no others, put off by what the decoder holds back', () => {
    const packets: Packet[] = [0, 40, 80, 120, 160].map((dts) => [null, dts]);
    expect(scan(packets).ticks).toEqual([0, 40, 80, 120, 160]);
    expect(scan(packets, { reorder: 2 }).ticks).toEqual([80, 120, 160, 200, 240]);
    // Fewer than the decoder holds back: nothing to go by.
    expect(scan(packets.slice(0, 2), { reorder: 2 }).ticks).toEqual([0, 40]);
  });

  it.each([
    ['half of them', 2, [0, 40, 80, 120]],
    ['more than half', 3, [40, 80, 120, 160]],
  ])('are put off only when most are missing: %s', (_, missing, ticks) => {
    const packets: Packet[] = [0, 40, 80, 120].map((time, i) => [i < missing ? null : time, time]);
    expect(scan(packets, { reorder: 1 }).ticks).toEqual(ticks);
  });
});

describe('a clock that jumps', () => {
  const jumps = (second: number): Packet[] => at(0, 40, 80, second, second + 40);
  it.each([
    ['mpegts', 'an hour ahead', 3_600_000, true],
    ['mpegps', 'an hour ahead', 3_600_000, true],
    ['mpegts', 'back', -5_000, true],
    ['mpegts', 'a second back', -920, true],
    ['mpegts', 'by less than ffmpeg minds', 9_000, false],
    ['mpegts', 'a moment back', 30, false],
    ['mp4', 'an hour ahead', 3_600_000, false],
  ] as const)('is straightened in %s: %s', (container, _, second, straightened) => {
    const times = scan(jumps(second), { container });
    expect(times.discontinuous).toBe(straightened);
    if (straightened) expect(times.ticks).toEqual([0, 40, 80, 120, 160]);
    else expect(times.endTick).toBe(Math.max(second + 40, 80) + 40);
  });

  it('may jump again, and takes every stream along', () => {
    const sound = (time: number): Packet => [time, time, 40, 'K_', 1];
    const packets = [0, 40, 900_000, 900_040, 5_000_000].flatMap((time): Packet[] => [
      [time, time],
      sound(time),
    ]);
    const times = scan(packets, { container: 'mpegts' });
    expect(times.ticks).toEqual([0, 40, 80, 120, 160]);
  });
});

describe('how a source lists its packets', () => {
  const gop = (count: number, every: number): Packet[] =>
    Array.from({ length: count }, (_, n): Packet => [n * 40, n * 40, 40, n % every === 0 ? 'K_' : '__']);

  it.each<[string, Packet[], boolean]>([
    ['rising', at(0, 40, 80), true],
    [
      'reordered',
      [
        [0, -40],
        [120, 0],
        [40, 40],
        [80, 80],
      ],
      true,
    ],
    [
      'decoding times that stand still',
      [
        [0, 0],
        [40, 0],
      ],
      false,
    ],
    [
      'decoding times that step back',
      [
        [0, 40],
        [40, 0],
      ],
      false,
    ],
    [
      'two pictures at once',
      [
        [0, 0],
        [0, 40],
      ],
      false,
    ],
    [
      'no time to be shown',
      [
        [null, 0],
        [40, 40],
      ],
      false,
    ],
    [
      'no time to be decoded',
      [
        [0, null],
        [40, 40],
      ],
      false,
    ],
  ])('is orderly or not: %s', (_, packets, orderly) => {
    expect(scan(packets).orderly).toBe(orderly);
  });

  it('counts from key frame to key frame, those without a time left out', () => {
    const [first, lost, last]: Packet[] = [
      [0, 0],
      [null, 40],
      [80, 80],
    ];
    if (first && lost && last) expect(scan([first, lost, last]).longestKeyGap).toBe(80);
    expect(scan(at(1000, 1040)).longestKeyGap).toBe(40);
  });

  it('lets sound have two packets at once', () => {
    expect(
      scan(
        [
          [0, 0],
          [0, 20],
        ],
        { kind: 'audio' },
      ).orderly,
    ).toBe(true);
  });

  it.each([
    ['every picture', gop(10, 1), 40],
    ['every third, ending with one', gop(10, 3), 120],
    ['none after the first', gop(10, 100), 400],
    ['none', gop(10, 1).map(([pts, dts]): Packet => [pts, dts, 40, '__']), Infinity],
  ])('tells how far key frames are apart: %s', (_, packets, gap) => {
    expect(scan(packets).longestKeyGap).toBe(gap);
  });
});

describe('a line of a packet', () => {
  const header = readProbeHeader(
    JSON.stringify({
      streams: [
        { index: 0, codec_type: 'video', time_base: '1/1000' },
        { index: 1, codec_type: 'audio', time_base: '1/50' },
        { index: 2, codec_type: 'video', time_base: 'x' },
      ],
      format: { format_name: 'x' },
    }),
  );
  const scanLines = (container: SourceContainer, ...pieces: string[]) => {
    const scanning = createPacketScan(container, header);
    for (const piece of pieces) scanning.write(piece);
    return scanning.end();
  };

  it.each([
    ['cut anywhere', ['0,0,0,40,K_\n0,4', '0,40,40,_', '_\n']],
    ['with another stream between', ['0,0,0,40,K_\n9,20,20,40,K_\n0,40,40,40,__']],
    ['that stops short', ['0,0,0,40,K_\n0,40,40,40,__\n0,80,80,40']],
    ['that is empty', ['\n0,0,0,40,K_\n\n0,40,40,40,__\n\n']],
    ['without a time to be shown', ['0,N/A,0,40,K_\n0,40,40,40,__']],
    ['without a time at all', ['0,0,0,40,K_\n0,N/A,N/A,40,__\n0,,,40,__\n0,40,40,40,__']],
    [
      'with a time that is none',
      ['0,0,0,40,K_\n0,1e300,x,40,__\n0,1.5,9007199254740993,40,__\n0,40,40,40,__'],
    ],
  ])('is read, or left out: %s', (_what, pieces) => {
    const times = scanLines('mp4', ...pieces).streams.get(0);
    expect([times?.ticks, times?.packets]).toEqual([[0, 40], 2]);
  });

  it('has no duration where none is said', () => {
    expect(scanLines('mp4', '0,0,0,N/A,K_').streams.get(0)).toMatchObject({ lastDuration: 0, endTick: 0 });
  });

  it('without any time leaves the clock as it is', () => {
    const lines = '0,100000,100000,40,K_\n0,N/A,N/A,40,__\n0,100040,100040,40,__';
    expect(scanLines('mpegts', lines).discontinuous).toBe(false);
  });

  it('that is shown when another is gives the last duration', () => {
    expect(scanLines('mp4', '0,0,0,40,K_\n0,0,20,99,__').streams.get(0)?.lastDuration).toBe(99);
  });

  it('is in milliseconds where the stream does not say', () => {
    const jumping = scanLines('mpegts', '2,0,0,40,K_\n2,40,40,40,__\n2,60000,60000,40,__');
    expect(jumping.streams.get(2)?.ticks).toEqual([0, 40, 80]);
  });

  it('is ended by the end, and only once', () => {
    const scanning = createPacketScan('mp4', header);
    scanning.write('0,0,0,40,K_\n0,40,40,40,__');
    scanning.end();
    expect(scanning.end().streams.get(0)?.packets).toBe(2);
  });

  it.each([
    ['nearly ten seconds ahead', '0,10039,10039,40,__', false],
    ['more than ten', '0,10041,10041,40,__', true],
    ['a tenth of a second back', '0,-100,-100,40,__', false],
    ['more than a tenth', '0,-101,-101,40,__', true],
    ['without a decoding time', '0,90000,N/A,40,__', true],
    ['without any time', '0,N/A,N/A,40,__', false],
  ])('leaps against the clock or not: %s', (_what, line, discontinuous) => {
    expect(scanLines('mpegts', `0,0,0,40,K_\n${line}`).discontinuous).toBe(discontinuous);
  });

  it('moves with the clock in its own ticks', () => {
    const lines = [
      '0,0,0,40,K_',
      '1,0,0,1,K_',
      '0,90000,90000,40,__',
      '1,4500,4500,1,K_',
      '0,90040,90040,40,__',
    ];
    const { streams } = scanLines('mpegts', lines.join('\n'));
    expect(streams.get(0)?.ticks).toEqual([0, 40, 80]);
    // By 89.96 s, which are 4,498 of its ticks.
    expect(streams.get(1)).toMatchObject({ firstTick: 0, endTick: 3 });
  });

  it('takes the first decoding time as it is', () => {
    const { streams, discontinuous } = scanLines(
      'mpegts',
      '0,5000000,5000000,40,K_\n0,5000040,5000040,40,__',
    );
    expect([streams.get(0)?.firstTick, discontinuous]).toEqual([5_000_000, false]);
  });

  it('is late by what the decoder holds back, at the usual distance in the end', () => {
    const packets: Packet[] = [0, 30, 90, 120].map((dts) => [null, dts]);
    expect(scan(packets, { reorder: 1 })).toMatchObject({
      ticks: [30, 90, 120, 165],
      firstTick: 30,
      endTick: 205,
    });
    expect(scan(packets.slice(0, 2), { reorder: 1 }).ticks).toEqual([30, 31]);
    expect(scan(packets.slice(0, 3), { reorder: 3 }).ticks).toEqual([0, 30, 90]);
  });
});
