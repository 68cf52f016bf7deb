// Package logtest makes logs for the tests of the packages that read them: generated logs, hostile
// logs, and samples of real programs. Only tests import it.
package logtest
