// Decides whether the HTML of a message is wider than a narrow screen.

/** Only the start of a long document is read, in characters. */
const MAX_LENGTH = 500_000;

/** Wider values are mistakes, or are meant to be cut off. */
const MAX_WIDTH = 1_200;

/** The default margin of a document on both sides. */
const MARGIN = 16;

/** A style sheet with such a rule adapts the message to the screen by itself. */
const RESPONSIVE = /@media[^{}]{0,200}max-(?:device-)?width/iu;

const TAG = /<(?:table|td|th|tr|div|img|center|body|section|main|article|p|span|a)\b[^<>]{0,2000}>/giu;
const WIDTH_ATTRIBUTE = /\swidth\s*=\s*["']?\s*(\d{3,4})(?:px)?\s*(?:["'\s>/])/iu;
const STYLE_ATTRIBUTE = /\sstyle\s*=\s*(?:"([^"]{0,2000})"|'([^']{0,2000})')/iu;
const WIDTH = /(?:^|[;{\s])(?:min-)?width\s*:\s*(\d{3,4})(?:\.\d+)?px/iu;
const FLEXIBLE = /(?:^|[;{\s])(?:width\s*:\s*\d+(?:\.\d+)?%|max-width\s*:)/iu;
const STYLE_SHEET = /<style\b[^>]{0,500}>([^<]{0,100000})/giu;
const RULE = /\{([^{}]{0,2000})\}/gu;

/**
 * Returns the width that a message needs, in pixels, or null if it fits into the available width or adapts to it.
 * @param {string} html
 * @param {number} available
 * @returns {number | null}
 */
export function neededWidth(html, available) {
  const shown = withoutComments(html.slice(0, MAX_LENGTH));
  if (RESPONSIVE.test(shown)) return null;
  const widths = [...tagWidths(shown), ...ruleWidths(shown)].filter((width) => width > available && width <= MAX_WIDTH);
  return widths.length > 0 ? Math.max(...new Set(widths)) + MARGIN : null;
}

/** @param {string} html */
function* tagWidths(html) {
  for (const [tag] of html.matchAll(TAG)) {
    const found = STYLE_ATTRIBUTE.exec(tag);
    const style = found?.[1] ?? found?.[2] ?? '';
    if (FLEXIBLE.test(style)) continue;
    const width = WIDTH.exec(style) ?? WIDTH_ATTRIBUTE.exec(tag);
    if (width) yield Number(width[1]);
  }
}

/** @param {string} html */
function* ruleWidths(html) {
  for (const [, sheet] of html.matchAll(STYLE_SHEET)) {
    for (const [, rule] of sheet.matchAll(RULE)) {
      const width = FLEXIBLE.test(rule) ? null : WIDTH.exec(rule);
      if (width) yield Number(width[1]);
    }
  }
}

/**
 * Removes comments: tables in them are for other mail programs.
 * @param {string} html
 */
function withoutComments(html) {
  const kept = [];
  let at = 0;
  while (at < html.length) {
    const open = html.indexOf('<!--', at);
    kept.push(html.slice(at, open < 0 ? html.length : open));
    const close = open < 0 ? -1 : html.indexOf('-->', open);
    at = close < 0 ? html.length : close + 3;
  }
  return kept.join('');
}
