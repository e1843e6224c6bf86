/**
 * Demuxers that a source may be read with, by ffmpeg's names. Without this list a playlist in disguise reads
 * files and makes requests; a list of protocols alone does not stop it.
 */
const demuxers = 'mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,mpeg,avi,flv';

/**
 * Options before every `-i`: what may be opened and how. Give the same to each probe and task, since they
 * also decide what ffmpeg sees of the streams. `inputUrl` is the loopback block reader's.
 */
export const inputArgs = (inputUrl: string): string[] => [
  ...['-protocol_whitelist', 'http,tcp'],
  ...['-format_whitelist', demuxers],
  // Odd files show their second stream late (AVCHD subtitles, long gaps before the sound).
  ...['-analyzeduration', '20000000', '-probesize', '20000000'],
  ...['-i', inputUrl],
];

const shownFields = [
  'format=format_name,start_time,duration,nb_streams',
  'stream=index,codec_name,codec_type,codec_tag_string,profile,width,height,pix_fmt,sample_aspect_ratio,' +
    'field_order,has_b_frames,r_frame_rate,avg_frame_rate,time_base,start_time,duration,nb_frames,' +
    'color_range,color_space,color_primaries,color_transfer,sample_rate,channels,channel_layout',
  'stream_tags=language,title,alpha_mode',
  'stream_disposition=default,attached_pic,timed_thumbnails,comment,visual_impaired,hearing_impaired',
  'stream_side_data=side_data_type,displaymatrix',
  'frame=media_type,stream_index,best_effort_timestamp,width,height,pix_fmt,interlaced_frame,' +
    'top_field_first,color_range,color_space,color_primaries,color_transfer,sample_aspect_ratio',
].join(':');

/** Packets decoded by the first probe, and by the one after `needsLongerSample`. */
export const samplePackets = { first: 60, longer: 1500 } as const;

/**
 * Arguments of the ffprobe run whose JSON `readProbeHeader` takes: streams, and the first pictures decoded
 * (`packets` over all streams), since headers lie about interlacing, colour and the first picture.
 */
export const probeArgs = (inputUrl: string, packets: number = samplePackets.first): string[] => [
  ...['-v', 'error', '-hide_banner', '-print_format', 'json'],
  ...['-show_format', '-show_streams', '-show_frames', '-show_entries', shownFields],
  ...['-read_intervals', `%+#${packets}`],
  ...inputArgs(inputUrl),
];

/**
 * Arguments of the ffprobe run whose standard output `createPacketScan` takes, line by line: the times of all
 * packets, demuxed and not decoded (headers lie about durations and rates).
 */
export const scanArgs = (inputUrl: string): string[] => [
  ...['-v', 'error', '-hide_banner', '-print_format', 'csv=p=0'],
  ...['-show_entries', 'packet=stream_index,pts,dts,duration,flags'],
  ...inputArgs(inputUrl),
];
