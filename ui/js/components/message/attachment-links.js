// The links of an attachment, and whether a browser may open it.

/** @import { Attachment, Message } from '../../types.js' */

import * as paths from '../../lib/paths.js';

/** Types that a browser opens as a document: HTML, and any XML including SVG. */
const DOCUMENT = /\/html$|[/+]x(?:ml|sl)$/u;

/** The reason why an attachment has no Open link. */
export const SAVE_ONLY = 'Download only: a document that is opened in a browser can notify its sender.';

/**
 * Returns the links to view and to download an attachment. Documents must not be opened: even if their policy blocks all
 * loading, a browser may connect to hosts that they name.
 * @param {Message} message
 * @param {Attachment} attachment
 */
export function attachmentLinks({ id }, attachment) {
  return {
    view: paths.attachment(id, attachment.index),
    download: paths.attachment(id, attachment.index, { download: true }),
    mayOpen: mayOpen(attachment),
  };
}

/**
 * Returns whether a browser may open this type.
 * @param {{ 'content-type': string }} typed
 */
export const mayOpen = (typed) => !DOCUMENT.test(mediaType(typed));

/**
 * Returns the media type without its parameters.
 * @param {{ 'content-type': string }} typed
 */
export const mediaType = (typed) => typed['content-type'].split(';')[0].trim().toLowerCase();

/**
 * Returns whether an attachment is listed as a file: the HTML does not show it.
 * @param {Attachment} attachment
 */
export const isListed = ({ inline }) => inline !== true;
