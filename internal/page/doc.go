// Package page makes an HTML page of logs. A [Page] is the printer of their filters.
package page
