package cli

import "strings"

// BashWords returns the function by which the script for bash gets the words of the line if the
// bash-completion package is not loaded: the library's own calls a function of that package.
// Readline separates words at = and : too; words that belong together are joined.
func BashWords(program string) string {
	return strings.ReplaceAll(bashWords, "PROGRAM", program)
}

const bashWords = `
__PROGRAM_init_completion()
{
    local i word blanks last="" line=${COMP_LINE:0:COMP_POINT}
    COMPREPLY=()
    words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        blanks=${line%%[![:blank:]]*}
        line=${line#"$blanks"}
        if [[ $line != "$word"* ]]; then
            word=$line # the cursor is within the word
        fi
        line=${line#"$word"}
        if ((i > 0)) && [[ -z $blanks && ( $word =~ ^[=:]+$ || $last =~ ^[=:]+$ || -z $word ) ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        last=$word
    done
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    prev=""
    if ((cword > 0)); then
        prev=${words[cword-1]}
    fi
}
`
