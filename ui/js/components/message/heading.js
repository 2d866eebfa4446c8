// The level of the heading of a message: the first heading of the page if the list next to it, which has one, is hidden.

/** The one-column layout, in which a message replaces the list. */
export const NARROW = matchMedia('(max-width: 46rem)');

/** @returns {'h1' | 'h2'} */
export const headingLevel = () => (NARROW.matches ? 'h1' : 'h2');
