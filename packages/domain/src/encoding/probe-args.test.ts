import { describe, expect, it } from '@jest/globals';
import { probeArgs, scanArgs } from './probe-args.ts';

const url = 'http://127.0.0.1:9/source';
/** A demuxer that reads other files, or a protocol that goes elsewhere, would leave the source. */
const input = [
  ...['-protocol_whitelist', 'http,tcp'],
  ...['-format_whitelist', 'mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,mpeg,avi,flv'],
  ...['-analyzeduration', '20000000', '-probesize', '20000000', '-i', url],
];
const quiet = ['-v', 'error', '-hide_banner', '-print_format'];

describe('ffprobe', () => {
  it('lists the streams and the first pictures, opening nothing but the source', () => {
    const args = probeArgs(url);
    const shown = args[args.indexOf('-show_entries') + 1] ?? '';
    expect(args).toEqual([
      ...[...quiet, 'json', '-show_format', '-show_streams', '-show_frames', '-show_entries', shown],
      ...['-read_intervals', '%+#60', ...input],
    ]);
    const sections = Object.fromEntries(
      shown.split(':').map((section): [string, string[]] => {
        const [name = '', fields = ''] = section.split('=');
        return [name, fields.split(',')];
      }),
    );
    expect(Object.keys(sections)).toEqual([
      ...['format', 'stream', 'stream_tags', 'stream_disposition', 'stream_side_data', 'frame'],
    ]);
    expect(sections).toMatchObject({
      format: expect.arrayContaining(['format_name', 'start_time']) as unknown,
      stream: expect.arrayContaining([
        'index',
        'codec_name',
        'field_order',
        'nb_frames',
        'color_range',
        'channel_layout',
      ]) as unknown,
      stream_tags: ['language', 'title', 'alpha_mode'],
      stream_disposition: expect.arrayContaining(['default', 'attached_pic', 'comment']) as unknown,
      stream_side_data: ['side_data_type', 'displaymatrix'],
      frame: expect.arrayContaining([
        'media_type',
        'best_effort_timestamp',
        'interlaced_frame',
        'top_field_first',
        'sample_aspect_ratio',
      ]) as unknown,
    });
  });

  it('looks at more pictures when asked to', () => {
    expect(probeArgs(url, 1500)).toContain('%+#1500');
  });

  it('lists the times of all packets', () => {
    expect(scanArgs(url)).toEqual([
      ...[...quiet, 'csv=p=0', '-show_entries', 'packet=stream_index,pts,dts,duration,flags'],
      ...input,
    ]);
  });
});
