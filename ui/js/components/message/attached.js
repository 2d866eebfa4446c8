// Where the content of an attachment is to be had, and whether it may be looked at in the browser.

/** @import { Attachment, Message } from '../../types.js' */

import * as paths from '../../lib/paths.js';

/** What a browser takes for a document: HTML, and XML of any kind, drawings among it. */
const DOCUMENT = /\/html$|[/+]x(?:ml|sl)$/u;

/** Why something is not opened. */
export const SAVE_ONLY = 'For download only: opened in a browser, a document may tell its sender of it.';

/**
 * Where an attachment is, to be looked at and to be saved. A document is not to be opened: even where its policy lets it
 * load nothing, a browser may call at the hosts that it names.
 * @param {Message} message
 * @param {Attachment} attachment
 */
export function ways({ mailbox, id }, attachment) {
  return {
    look: paths.attachment('vattach', mailbox, id, attachment),
    save: paths.attachment('dattach', mailbox, id, attachment),
    mayOpen: mayOpen(attachment),
  };
}

/**
 * Whether something of this type may be opened in the browser.
 * @param {{ 'content-type': string }} typed
 */
export const mayOpen = (typed) => !DOCUMENT.test(kind(typed));

/**
 * The media type without its parameters.
 * @param {{ 'content-type': string }} typed
 */
export const kind = (typed) => typed['content-type'].split(';')[0].trim().toLowerCase();
