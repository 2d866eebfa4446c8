// Estimates the width that the HTML of a message needs. A page cannot measure a sandboxed frame, so this lays out the elements
// roughly: fixed widths, padding, the columns of tables, and the longest words.

/** Only the start of a long document is read, in characters. */
const MAX_LENGTH = 200_000;

/** Wider values are mistakes, or are meant to be cut off. */
const MAX_WIDTH = 1_200;

/** Deeper elements count as part of their parent. */
const MAX_DEPTH = 200;

/** The default margin of a document on both sides. */
const MARGIN = 16;

/** Longer words are usually URLs, which are broken. */
const MAX_WORD_LENGTH = 24;

/** The mean width of a character, relative to the font size. */
const CHARACTER = 0.5;
const FONT_SIZE = 16;

/** A style sheet with such a rule adapts the message to the screen by itself. */
const RESPONSIVE = /@media[^{}]{0,200}max-(?:device-)?width/iu;

const IGNORED = /<!--[\s\S]*?(?:-->|$)|<(style|script|title|head)\b[\s\S]*?(?:<\/\1\s*>|$)/giu;
const TOKEN = /<(\/?)([a-z][a-z0-9]*)\b([^<>]{0,4000})>|([^<]+)/giu;
const STYLE_SHEET = /<style\b[^>]{0,500}>([^<]{0,100000})/giu;
const RULE = /\{([^{}]{0,2000})\}/gu;
const WIDTH = /\swidth\s*=\s*["']?\s*(\d{1,4})(?:px)?\s*(?=["'\s/]|$)/iu;
const CELL_PADDING = /\scellpadding\s*=\s*["']?\s*(\d{1,3})/iu;
const PADDING_LEFT = /padding-left\s*:\s*(\d{1,3})/iu;
const PADDING_RIGHT = /padding-right\s*:\s*(\d{1,3})/iu;
const FLEXIBLE = /(?:^|[;\s])(?:width\s*:\s*\d+(?:\.\d+)?%|max-width\s*:)/iu;
const VOID = ['area', 'base', 'br', 'col', 'hr', 'img', 'input', 'link', 'meta', 'source', 'wbr'];

/** The elements that a start tag closes if they are open, up to the table or list that contains them. @type {Record<string, string[]>} */
const CLOSES = { td: ['td', 'th'], th: ['td', 'th'], tr: ['td', 'th', 'tr'], tbody: ['td', 'th', 'tr', 'tbody', 'thead'], p: ['p'], li: ['li'] };

/** @type {Record<string, number>} */
const FONT_SIZES = { h1: 32, h2: 24, h3: 19 };

/**
 * An open element. `width` is the least width of its content so far.
 * @typedef {{ name: string, width: number, padding: number, fixed: number, cellPadding: number, fontSize: number, isUnbroken: boolean, isHidden: boolean }} Box
 */

/**
 * Returns the width that a message needs, in pixels, or null if it fits into the available width or adapts to it.
 * @param {string} html
 * @param {number} available
 * @returns {number | null}
 */
export function neededWidth(html, available) {
  const shown = html.slice(0, MAX_LENGTH);
  if (RESPONSIVE.test(shown)) return null;
  const needed = Math.max(leastWidth(shown.replaceAll(IGNORED, '')), ...[...ruleWidths(shown)].slice(0, 1_000)) + MARGIN;
  return needed > available + MARGIN && needed <= MAX_WIDTH ? Math.ceil(needed) : null;
}

/** @param {string} html Without comments and style sheets. */
function leastWidth(html) {
  /** @type {Box[]} */
  const open = [{ name: '', width: 0, padding: 0, fixed: 0, cellPadding: 0, fontSize: FONT_SIZE, isUnbroken: false, isHidden: false }];
  const close = () => {
    const box = /** @type {Box} */ (open.pop());
    const parent = open[open.length - 1];
    const width = box.isHidden ? 0 : limited(Math.max(box.fixed, box.width + box.padding));
    // The cells of a row are side by side.
    parent.width = box.name === 'td' || box.name === 'th' ? parent.width + width : Math.max(parent.width, width);
  };
  for (const [, end, tag, attributes, text] of html.matchAll(TOKEN)) {
    const parent = open[open.length - 1];
    if (text !== undefined) {
      parent.width = Math.max(parent.width, textWidth(text, parent));
      continue;
    }
    const name = tag.toLowerCase();
    if (end) {
      const at = open.findLastIndex((box) => box.name === name);
      while (at > 0 && open.length > at) close();
      continue;
    }
    while (CLOSES[name]?.includes(open[open.length - 1].name)) close();
    const box = boxOf(name, attributes, open[open.length - 1]);
    if (VOID.includes(name) || open.length >= MAX_DEPTH) open[open.length - 1].width = Math.max(open[open.length - 1].width, limited(box.fixed));
    else open.push(box);
  }
  while (open.length > 1) close();
  return open[0].width;
}

/**
 * @param {string} name
 * @param {string} attributes
 * @param {Box} parent
 * @returns {Box}
 */
function boxOf(name, attributes, parent) {
  const style = /\sstyle\s*=\s*(?:"([^"]*)"|'([^']*)')/iu.exec(attributes)?.slice(1).find(Boolean) ?? '';
  const attribute = (/** @type {RegExp} */ wanted) => Number(wanted.exec(attributes)?.[1] ?? 0);
  const isCell = name === 'td' || name === 'th';
  const cellPadding = name === 'table' ? attribute(CELL_PADDING) || 1 : parent.cellPadding;
  const fontSize = Number(/(?:^|[;\s])font-size\s*:\s*(\d{1,3})px/iu.exec(style)?.[1] ?? FONT_SIZES[name] ?? parent.fontSize);
  const isHidden = /(?:^|[;\s])display\s*:\s*none/iu.test(style);
  const padding = horizontalPadding(style) ?? (isCell ? 2 * cellPadding : 0);
  const isFlexible = FLEXIBLE.test(style);
  const declared = isFlexible ? 0 : Number(/(?:^|[;\s])(?:min-)?width\s*:\s*(\d{1,4})(?:\.\d+)?px/iu.exec(style)?.[1] ?? attribute(WIDTH));
  // The padding of other boxes than tables is added to their width, unless their style says otherwise.
  const outer = declared > 0 && name !== 'table' && !isCell && !/border-box/iu.test(style) ? padding : 0;
  return { name, width: 0, padding, fixed: isHidden ? 0 : declared + outer, cellPadding, fontSize, isHidden, isUnbroken: parent.isUnbroken || name === 'pre' || name === 'nobr' || /nowrap/iu.test(style) || (isCell && /\snowrap\b/iu.test(attributes)) };
}

/**
 * @param {string} text
 * @param {Box} box
 */
function textWidth(text, { fontSize, isUnbroken, name }) {
  const separator = name === 'pre' ? /\n/u : isUnbroken ? /$/u : /[\s\u200b-]+|&nbsp;/u;
  const longest = text.trim().split(separator).reduce((most, word) => Math.max(most, word.replaceAll(/&#?\w{1,10};/gu, 'x').length), 0);
  return limited((isUnbroken ? longest : Math.min(longest, MAX_WORD_LENGTH)) * fontSize * CHARACTER);
}

/**
 * Returns the padding on both sides in pixels, or null if the style has none.
 * @param {string} style
 */
function horizontalPadding(style) {
  const all = /(?:^|[;\s])padding\s*:\s*([^;]{1,60})/iu.exec(style)?.[1].trim().split(/\s+/u).map((length) => (/^\d+(?:\.\d+)?(?:px)?$/u.test(length) ? parseFloat(length) : 0));
  const [right, left] = [PADDING_RIGHT.exec(style)?.[1] ?? all?.[1] ?? all?.[0], PADDING_LEFT.exec(style)?.[1] ?? all?.[3] ?? all?.[1] ?? all?.[0]];
  return right === undefined && left === undefined ? null : Number(right ?? 0) + Number(left ?? 0);
}

/** A wider part is cut off, so that it does not hide the width of the others. @param {number} width */
const limited = (width) => (width > MAX_WIDTH ? 0 : width);

/** @param {string} html */
function* ruleWidths(html) {
  for (const [, sheet] of html.matchAll(STYLE_SHEET)) {
    for (const [, rule] of sheet.matchAll(RULE)) {
      if (FLEXIBLE.test(rule)) continue;
      const width = /(?:^|[;{\s])(?:min-)?width\s*:\s*(\d{3,4})(?:\.\d+)?px/iu.exec(rule);
      if (width) yield limited(Number(width[1]) + (horizontalPadding(rule) ?? 0));
    }
  }
}
