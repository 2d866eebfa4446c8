// Estimates the height of the HTML of a message on paper. A page cannot measure a sandboxed frame, and cannot wait before it is printed.

import * as paths from '../../lib/paths.js';

/** 200 pages, in pixels. */
const MAX_HEIGHT = 200_000;

/** Usual values, in characters and pixels. */
const LINE_LENGTH = 80;
const LINE_HEIGHT = 22;
const MARGIN = 18;
const IMAGE_HEIGHT = 150;

const IGNORED = /<!--[\s\S]*?(?:-->|$)|<(style|script|title|head)\b[\s\S]*?(?:<\/\1\s*>|$)/giu;
/** Where a new line starts. */
const BREAK = /<(?:br|hr|\/?(?:p|div|tr|li|ul|ol|h[1-6]|table|blockquote|pre|section|article))\b[^<>]{0,4000}>/iu;
const PARAGRAPH = /<(?:p|h[1-6]|ul|ol|blockquote|hr)\b/giu;
const IMAGE = /<img\b[^<>]{0,4000}>/giu;
const HEIGHT = /\sheight\s*=\s*["']?(\d{1,4})/iu;
const PADDING = /padding(?:-top|-bottom)?\s*:\s*(\d{1,3})/giu;

/**
 * Returns the height in pixels; 0 if the HTML cannot be loaded.
 * @param {string} id The id of the message.
 */
export function printHeight(id) {
  const request = new XMLHttpRequest();
  request.open('GET', paths.body(id, 'html'), false);
  try {
    request.send();
  } catch {
    return 0;
  }
  return request.status === 200 ? Math.min(MAX_HEIGHT, estimate(request.responseText.slice(0, 5_000_000))) : 0;
}

/** @param {string} html */
function estimate(html) {
  const shown = html.replaceAll(IGNORED, '');
  const lines = shown.split(BREAK).map((run) => run.replaceAll(/<[^<>]*>/gu, '').replaceAll(/\s+/gu, ' ').trim().length).reduce((sum, length) => sum + Math.ceil(length / LINE_LENGTH), 0);
  const images = [...shown.matchAll(IMAGE)].reduce((sum, [tag]) => sum + Number(HEIGHT.exec(tag)?.[1] ?? IMAGE_HEIGHT), 0);
  const padding = [...shown.matchAll(PADDING)].reduce((sum, [, value]) => sum + 2 * Number(value), 0);
  return lines * LINE_HEIGHT + (shown.match(PARAGRAPH)?.length ?? 0) * MARGIN + images + padding;
}
