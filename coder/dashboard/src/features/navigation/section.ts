/** The id of the part of a page next to its side navigation. */
export const SECTION = "section";
