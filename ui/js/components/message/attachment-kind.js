// How an attachment is shown in the page.

/** @import { Attachment } from '../../types.js' */

import { mediaType } from './attachment-links.js';

/** Image types that all browsers support, and that run no script in an `img` element. */
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp', 'image/svg+xml'];

/** Types that are shown as text although their name does not say so. */
const TEXT_TYPES = ['application/json', 'application/xml', 'application/x-ndjson', 'application/yaml', 'application/x-yaml', 'application/sql', 'application/csv', 'message/rfc822', 'message/delivery-status'];

/** Extensions of text files that are often sent with a general type. */
const TEXT_NAME = /\.(?:csv|eml|ics|ini|json|log|md|patch|sql|toml|tsv|txt|vcf|xml|ya?ml)$/iu;

/** HTML is never shown: it could imitate the page. */
const HTML = /html/u;

/** A longer text is not shown, in bytes. */
const MAX_TEXT_BYTES = 1_000_000;

/**
 * Returns how an attachment is shown, or null if it can only be downloaded.
 * @param {Attachment} attachment
 * @returns {'image' | 'pdf' | 'text' | null}
 */
export function attachmentKind(attachment) {
  const type = mediaType(attachment);
  if (IMAGE_TYPES.includes(type)) return 'image';
  if (type === 'application/pdf') return 'pdf';
  if (HTML.test(type) || /\.x?html?$/iu.test(attachment.filename)) return null;
  const isText = type.startsWith('text/') || /\+(?:json|xml)$/u.test(type) || TEXT_TYPES.includes(type) || (type === 'application/octet-stream' && TEXT_NAME.test(attachment.filename));
  return isText && attachment.size <= MAX_TEXT_BYTES ? 'text' : null;
}
