// Package page makes a page of HTML of logs: a [Page] is a printer of their filters.
package page
