// Package examples runs the examples that people clone: each compose file is checked, and its services run with programs of this machine,
// as its README.md describes.
package examples
