// The filters of a list: controls that add a term to the query, or remove it. The query of the address is their only state.

/** The filters that are always offered. */
export const FILTERS = [
  { term: 'is:unseen', label: 'Unread' },
  { term: 'has:attachment', label: 'Attachments' },
  { term: 'after:today', label: 'Today' },
];

/**
 * Returns the term of a tag.
 * @param {string} tag
 */
export const tagTerm = (tag) => (/^[\w.-]+$/u.test(tag) ? `tag:${tag}` : `tag:"${tag.replaceAll('"', '')}"`);

/**
 * Returns whether a query contains a term, in any case and with or without quotes.
 * @param {string} query
 * @param {string} term
 */
export const hasTerm = (query, term) => terms(query).some((other) => isSameTerm(other, term));

/**
 * Returns the tags that messages must have to match a query.
 * @param {string} query
 */
export function tagsOf(query) {
  const all = terms(query);
  return hasAlternatives(all) ? [] : all.filter((term) => /^tag:./iu.test(term)).map((term) => term.slice('tag:'.length).replaceAll('"', ''));
}

/**
 * Replaces a tag in a query, or removes it.
 * @param {string} query
 * @param {string} from
 * @param {string | null} to
 */
export function replaceTag(query, from, to) {
  return terms(query).flatMap((term) => (!isSameTerm(term, tagTerm(from)) ? [term] : to === null ? [] : [tagTerm(to)])).join(' ');
}

/**
 * Adds a term to a query, or removes it.
 * @param {string} query
 * @param {string} term
 */
export function toggleTerm(query, term) {
  const all = terms(query);
  const rest = all.filter((other) => !isSameTerm(other, term));
  if (rest.length < all.length) return rest.join(' ');
  const whole = all.join(' ');
  // The new term applies to all alternatives.
  return [hasAlternatives(all) ? `(${whole})` : whole, term].join(' ').trim();
}

/**
 * Splits a query at spaces that are not in quotes or parentheses. Closes an unfinished quotation.
 * @param {string} query
 */
export function terms(query) {
  /** @type {string[]} */
  const found = [];
  let [term, depth, isQuoted] = ['', 0, false];
  for (const character of query) {
    if (character === '"') isQuoted = !isQuoted;
    if (!isQuoted && character === '(') depth += 1;
    if (!isQuoted && character === ')') depth -= 1;
    if (!isQuoted && depth <= 0 && /\s/u.test(character)) {
      found.push(term);
      term = '';
    } else {
      term += character;
    }
  }
  found.push(isQuoted ? `${term}"` : term);
  return found.filter((each) => each !== '');
}

/** @param {string[]} terms */
const hasAlternatives = (terms) => terms.some((term) => term.toLowerCase() === 'or');

/**
 * @param {string} a
 * @param {string} b
 */
const isSameTerm = (a, b) => normalize(a) === normalize(b);

/** @param {string} term */
const normalize = (term) => term.replaceAll('"', '').toLowerCase();
