/** A module that exports something else. */
export default 42;
