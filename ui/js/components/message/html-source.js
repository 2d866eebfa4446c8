// <message-html-source>: the decoded HTML of a message as text, with tags, attributes, values and comments in color.

/** @import { Child } from '../../lib/dom.js' */
/** @import { Message } from '../../types.js' */
/** @import { Highlighter, Row } from './source-panel.js' */
/** @import { TokenKind } from './html-tokens.js' */

import * as api from '../../lib/api.js';
import * as paths from '../../lib/paths.js';
import { h } from '../../lib/dom.js';
import { icon } from '../../lib/icons.js';
import { fileName } from './downloads.js';
import { HtmlTokens, START } from './html-tokens.js';
import { SourcePanel } from './source-panel.js';

/** Further tokens of a chunk have no color. */
const MAX_TOKENS = 5_000;

export class MessageHtmlSource extends SourcePanel {
  /** @param {Message} message */
  constructor(message) {
    const { id } = message;
    super({
      label: 'HTML source',
      pref: 'html-source.wrap',
      wrapped: true,
      download: h('a', { class: 'button small', href: paths.body(id, 'html', { download: true }), download: fileName(message, 'html'), title: 'Download .html', 'aria-label': 'Download .html' }, icon('download')),
      load: (signal) => api.body(id, 'html', signal),
      highlighter,
    });
  }
}

/**
 * @param {string} html
 * @param {Row[][]} chunks
 * @returns {Highlighter}
 */
function highlighter(html, chunks) {
  const tokens = new HtmlTokens(html);
  /** The state at the start of each chunk, as far as it is known. */
  const states = [START];
  const skip = () => {};
  return (at) => {
    while (states.length <= at) {
      states.push(chunks[states.length - 1].reduce((state, { start, end }) => tokens.scan(start, end, state, skip), states[states.length - 1]));
    }
    let [state, left] = [states[at], MAX_TOKENS];
    return chunks[at].map(({ start, end }) => {
      /** @type {Child[]} */
      const nodes = [];
      state = tokens.scan(start, end, state, (kind, from, to) => {
        left -= 1;
        nodes.push(colored(kind, html.slice(from, to), left > 0));
      });
      return { nodes };
    });
  };
}

/**
 * @param {TokenKind} kind
 * @param {string} text
 * @param {boolean} isColored
 */
const colored = (kind, text, isColored) => (kind === 'text' || !isColored ? text : h('span', { class: `html-${kind}` }, text));

customElements.define('message-html-source', MessageHtmlSource);
