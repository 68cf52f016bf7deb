// Package logtest makes logs for the tests of the packages that read them: generated ones, hostile
// ones, and those of real programs. Only tests import it.
package logtest
