"""Moves money, one transfer of an account at a time: transfer_funds.py FROM TO SUM"""

import sys

import holdfast


class CannotPay(Exception):
    """Our own reason: nothing is written, nothing is tried again."""


def transfer(tx: holdfast.Tx, payer: str, payee: str, amount: int) -> None:
    rows = tx.query("SELECT balance FROM account WHERE name = $1", payer)
    if not rows or int(rows[0][0]) < amount:
        raise CannotPay(f"{payer} cannot pay {amount}")
    tx.queue("UPDATE account SET balance = balance - $2 WHERE name = $1", payer, amount)
    tx.queue("UPDATE account SET balance = balance + $2 WHERE name = $1", payee, amount)


def main(payer: str, payee: str, amount: str) -> int:
    labels = [f"Account:{payer}", f"Account:{payee}"]
    with holdfast.Store() as store:  # HOLDFAST_URL, or a local folder
        try:
            # The labels are locked in the order of their keys, before the snapshot. The function may
            # run again after a conflict or a broken connection; it is committed once.
            store.transact(lambda tx: transfer(tx, payer, payee, int(amount)), labels)
        except (CannotPay, holdfast.Error) as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 4 else 64)
