"""Servers whose past this operator may not know: what their record of tenancy says, and what happens to them first.

`adoption_table` lists each case with what happens; `adoption` collects the facts and executes the row. `recreated` is
about a deleted Server, `takeover` about another operator's, whose data `unknown_data` erases or trusts. `lost_status`
keeps a copy of the record and rebuilds it, `outdated_status` corrects one that a backup brought back.

May import the other modules of `tenancy` and what they may import; none of them imports this package. Start reading in
`adoption_table`, then `adoption`.
"""
