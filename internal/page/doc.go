// Package page writes logs as an HTML page. A [Page] is the [filter.Printer] of the logs' filters.
package page
