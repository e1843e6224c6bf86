// C0, DEL and C1, which no title may hold.
const controlCharacters = /[\u0000-\u001f\u007f-\u009f]/g;
const longestTitle = 200;

/**
 * The title of a new video (contract UPL-203): the given one, else the file's name without its ending
 * (control characters become spaces, cut to 200 characters), else `Untitled`.
 */
export function titleOf({
  title,
  fileName,
}: {
  title?: string | undefined;
  fileName?: string | undefined;
}): string {
  if (title !== undefined) return title;
  const stem = (fileName ?? '').replace(/\.[^.\s]*$/, '').replace(controlCharacters, ' ');
  const cut = Array.from(stem).slice(0, longestTitle).join('');
  return cut.trim() === '' ? 'Untitled' : cut;
}
