interface Part {
  partNumber: number;
  url: string;
}
interface Upload {
  partSizeBytes: number;
  parts: Part[];
}

/** Whether an answer is an upload that waits for its parts. */
export const isUpload = (answer: unknown): answer is Upload =>
  typeof answer === 'object' && answer !== null && 'partSizeBytes' in answer && 'parts' in answer;

/** PUTs each part of a file to its URL; answers what the complete call names. @throws Error for a part that was refused */
export async function sendParts(
  { partSizeBytes, parts }: Upload,
  file: Blob,
): Promise<{ partNumber: number; etag: string }[]> {
  const sent: { partNumber: number; etag: string }[] = [];
  for (const { partNumber, url } of parts) {
    const begin = (partNumber - 1) * partSizeBytes;
    const response = await fetch(url, { method: 'PUT', body: file.slice(begin, begin + partSizeBytes) });
    if (!response.ok) throw new Error(`part ${String(partNumber)} was answered ${String(response.status)}`);
    sent.push({ partNumber, etag: response.headers.get('etag') ?? '' });
  }
  return sent;
}
