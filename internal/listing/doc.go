// Package listing walks over the models that a selector picks, page by page: no page looks at more than it takes to fill it.
package listing
