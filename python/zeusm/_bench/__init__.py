"""`zeusm bench`, and the measuring that `benches/` shares with it: `alternate` compares functions, `cases` has those of the
command."""
